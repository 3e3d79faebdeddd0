// Takes screenshots of every page at three widths, in both themes, of an empty, a busy and a broken cluster; checks
// each with axe; and reports console errors and horizontal overflow. Usage: node test/look.mjs DIRECTORY [FILTER]
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";
import { serve } from "./fixture/server.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const [out = "../../../bin/console", filter = ""] = process.argv.slice(2);
mkdirSync(out, { recursive: true });

const widths = { wide: [1440, 900], middle: [900, 1000], phone: [390, 844] };
const pages = ["cluster", "jobs", "stock", "keys", "network", "conduct", "audit", "process"];
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
let findings = 0;
let shots = 0;
const report = (where, text) => {
  findings++;
  console.log(`${where}: ${text}`);
};

for (const role of ["coordinator", "party"]) {
  for (const scene of ["empty", "busy", "broken", "out"]) {
    if (scene === "out" && role === "party") continue;
    const server = await serve({ role, scene });
    for (const [width, [w, h]] of Object.entries(widths)) {
      for (const theme of ["light", "dark"]) {
        const context = await browser.newContext({ viewport: { width: w, height: h }, colorScheme: theme, ignoreHTTPSErrors: true, bypassCSP: false, reducedMotion: "reduce" });
        for (const name of scene === "out" ? ["cluster"] : [...pages, ...(role === "coordinator" && scene !== "empty" ? ["jobs/j-x"] : [])]) {
          const where = `${role}-${scene}-${name.replace("/j-x", "-one")}-${width}-${theme}`;
          if (filter && !new RegExp(filter).test(where)) continue;
          const page = await context.newPage();
          page.on("console", (m) => ["error", "warning"].includes(m.type()) && report(where, m.text()));
          page.on("pageerror", (e) => report(where, String(e)));
          await page.goto(`${server.url}/${name}`);
          await page.waitForSelector("h1");
          await page.evaluate(() => document.fonts.ready);
          await page.waitForTimeout(scene === "out" ? 200 : 700);
          const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
          if (over > 0) report(where, `${over} px wider than the screen`);
          const frame = await page.evaluate(async (source) => {
            // The page's policy forbids inline scripts; the test runs axe from the debugger instead.
            (0, eval)(source);
            const result = await axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] });
            return result.violations.map((v) => `${v.impact} ${v.id}: ${v.nodes.slice(0, 3).map((n) => n.target.join(" ") + " " + (n.any[0]?.message ?? "")).join("; ")}`);
          }, axe).catch((e) => [String(e)]);
          for (const v of frame) report(where, v);
          await page.screenshot({ path: `${out}/${where}.png`, fullPage: true });
          shots++;
          await page.close();
        }
        await context.close();
      }
    }
    server.close();
  }
}
await browser.close();
console.log(`${shots} screenshots, ${findings} findings`);
process.exit(findings ? 1 : 0);
