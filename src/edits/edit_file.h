// edits.json: changes to weights as a file that people review and other programs read (docs/formats.md).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "edits/edit.h"

namespace netmend::edits {

/// What a file says of a parameter, so that it can be found where names were lost.
struct About {
  std::vector<int64_t> shape;
  std::vector<double> before;  ///< all values where there is one axis, else empty
};

struct EditFile {
  std::string model, checksum;  ///< of the file they were made for; "" when not told
  std::map<std::string, About> parameters;
  std::vector<Edit> edits;
};

/// A file for these edits; `graph` as it is before they are applied.
EditFile describe(const model::Graph& graph, std::vector<Edit> edits, const std::string& model,
                  const std::string& checksum);

/// Numbers are written so that they read back to the same bits. Throws InputError for an edit that would write NaN
/// or Inf; such values before it are written as the words "nan", "inf" and "-inf", which JSON has no numbers for.
std::string to_text(const EditFile& file);
void write_edits(const EditFile& file, const std::string& path);

/// Files are hostile: types, sizes and numbers are checked, and what is wrong is told with its place. Only `edits` must
/// be there. `where` begins every message.
EditFile parse_edits(std::string_view text, const std::string& where);
EditFile read_edits(const std::string& path);
/// The parameters described are those of the model. Throws InputError.
void require_fit(const model::Graph& graph, const EditFile& file);

}  // namespace netmend::edits
