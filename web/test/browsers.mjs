// Debian's browsers, driven over WebDriver BiDi (Firefox) and the DevTools
// protocol (Chromium). Nothing of theirs is downloaded.
import puppeteer from "puppeteer-core";

export const names = (process.env.BROWSERS ?? "chrome firefox").split(" ");

const paths = {
  chrome: process.env.CHROMIUM ?? "/usr/bin/chromium",
  firefox: process.env.FIREFOX ?? "/usr/bin/firefox-esr",
};

/** Runs with the page's colours as at night, in browsers that can be told so. */
export async function inDark(tab, run) {
  const told = (value) => tab.emulateMediaFeatures([{ name: "prefers-color-scheme", value }]).then(() => true, () => false);
  if (!(await told("dark"))) return;
  await run();
  await told("light");
}

/** A name that is no loopback address to a page and to its edge, and leads to this machine. */
export const elsewhere = "coordinator.test";

/** Starts one of the browsers, who takes any certificate of elsewhere, with more flags, preferences or environment of its own; the caller closes it. */
export function launch(browser, { flags = [], preferences = {}, env = {} } = {}) {
  return puppeteer.launch({
    env: { ...process.env, ...env },
    acceptInsecureCerts: true, browser, executablePath: paths[browser], headless: true, timeout: 60_000,
    args: browser === "chrome" ? ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
      "--disable-background-networking", "--disable-component-update", "--disable-sync",
      `--host-resolver-rules=MAP ${elsewhere} 127.0.0.1`, ...flags] : [],
    // No word to anybody but the page's own server.
    extraPrefsFirefox: { "network.dns.localDomains": elsewhere, "network.captive-portal-service.enabled": false, "network.connectivity-service.enabled": false, ...preferences },
  });
}
