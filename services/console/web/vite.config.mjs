import { readFileSync, readdirSync } from "node:fs";
import { defineConfig } from "vite";

// licences writes the licences of everything that the build contains into one file beside it.
function licences() {
  return {
    name: "licences",
    generateBundle() {
      const own = JSON.parse(readFileSync("package.json", "utf8"));
      const parts = Object.keys(own.dependencies).sort().map((name) => {
        const folder = `node_modules/${name}`;
        const made = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
        const texts = readdirSync(folder).filter((file) => /^(licen[cs]e|notice)/i.test(file)).sort().map((file) => readFileSync(`${folder}/${file}`, "utf8").trim());
        return [`${name} ${made.version}, ${made.license}`, ...texts].join("\n\n");
      });
      this.emitFile({ type: "asset", fileName: "assets/licences.txt", source: parts.join(`\n\n${"-".repeat(80)}\n\n`) + "\n" });
    },
  };
}

// The build is deterministic: names come from content, and nothing depends on time, the path or the machine.
export default defineConfig({
  base: "/",
  publicDir: false,
  plugins: [licences()],
  esbuild: { jsx: "automatic", jsxImportSource: "preact", legalComments: "none" },
  build: {
    outDir: "dist",
    emptyOutDir: true,
    target: "es2022",
    // The policy of the console allows no data: scripts and styles, so every asset is a file.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    cssCodeSplit: false,
    rollupOptions: {
      output: {
        entryFileNames: "assets/console-[hash].js",
        chunkFileNames: "assets/[name]-[hash].js",
        assetFileNames: "assets/[name]-[hash][extname]",
      },
    },
  },
});
