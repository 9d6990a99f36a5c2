// One output: template.html, with script and style inside. The script is allowed by its checksum alone and nothing may be
// loaded, so that not even a mistake of ours lets text from a stranger's file act.
import { createHash } from "node:crypto";
import { defineConfig, type Plugin } from "vite";

const place = "@NETMEND_REPORT@"; // src/report/page.cc puts the document here

function oneFile(): Plugin {
  return {
    name: "one-file",
    enforce: "post",
    generateBundle(_, bundle) {
      let script = "";
      let style = "";
      for (const [name, part] of Object.entries(bundle)) {
        if (part.type === "chunk") script += part.code;
        else if (name.endsWith(".css")) style += part.source;
        delete bundle[name];
      }
      script = script.replace(/<\/script/gi, "<\\/script").replace(/<!--/g, "<\\!--");
      const sum = createHash("sha256").update(script).digest("base64");
      const rules = [
        "default-src 'none'",
        `script-src 'sha256-${sum}'`,
        "style-src 'unsafe-inline'",
        "img-src data: blob:",
        "base-uri 'none'",
        "form-action 'none'",
        "require-trusted-types-for 'script'", // no text becomes markup or code, whoever asks for it
        "trusted-types 'none'",
      ];
      const page = [
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        `<meta http-equiv="Content-Security-Policy" content="${rules.join("; ")}">`,
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="referrer" content="no-referrer">',
        "<title>netmend</title>",
        `<style>${style}</style>`,
        "</head>",
        "<body>",
        '<div id="page"></div>',
        "<noscript>This report draws itself with JavaScript; nothing is loaded and nothing is sent.</noscript>",
        `<script type="application/json" id="report">${place}</script>`,
        `<script>${script}</script>`,
        "</body>",
        "</html>",
        "",
      ].join("\n");
      if (page.split(place).length !== 2) this.error(`the page must hold ${place} exactly once`);
      this.emitFile({ type: "asset", fileName: "template.html", source: page });
    },
  };
}

export default defineConfig({
  plugins: [oneFile()],
  build: {
    target: "es2021",
    modulePreload: false,
    cssCodeSplit: false,
    reportCompressedSize: false,
    lib: { entry: "src/main.ts", formats: ["iife"], name: "netmend" },
  },
  define: { "process.env.NODE_ENV": '"production"' },
  logLevel: "warn",
});
