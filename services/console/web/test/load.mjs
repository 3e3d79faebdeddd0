// load imports a TypeScript module of the console into a test.
import { buildSync } from "esbuild";
import { fileURLToPath } from "node:url";

export async function load(path) {
  const entry = fileURLToPath(new URL(`..${path}`, import.meta.url));
  const { outputFiles } = buildSync({ entryPoints: [entry], bundle: true, write: false, format: "esm", platform: "node", logLevel: "error" });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].text).toString("base64")}`);
}
