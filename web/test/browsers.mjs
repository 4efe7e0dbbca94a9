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

/** Starts one of the browsers; the caller closes it. */
export function launch(browser) {
  return puppeteer.launch({
    browser, executablePath: paths[browser], headless: true, timeout: 60_000,
    args: browser === "chrome" ? ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
      "--disable-background-networking", "--disable-component-update", "--disable-sync"] : [],
    // No word to anybody but the page's own server.
    extraPrefsFirefox: { "network.captive-portal-service.enabled": false, "network.connectivity-service.enabled": false },
  });
}
