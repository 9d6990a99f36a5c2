// The built page as C++: node embed.mjs TEMPLATE OUTPUT
import { readFileSync, writeFileSync } from "node:fs";

const [template, output] = process.argv.slice(2);
const parts = readFileSync(template, "utf8").split("@NETMEND_REPORT@");
if (parts.length !== 2) throw new Error(`${template} must hold the place for the report exactly once`);
const literal = (text) => {
  if (text.includes(')page"')) throw new Error(`${template} holds what ends a literal`);
  return `R"page(${text})page"`;
};
writeFileSync(output, `// Built from report/.
#include "report/template.h"

namespace netmend::report {

std::string_view template_head() { return ${literal(parts[0])}; }
std::string_view template_tail() { return ${literal(parts[1])}; }

}  // namespace netmend::report
`);
