// Debian's browsers, driven over WebDriver BiDi (Firefox) and the DevTools
// protocol (Chromium). Nothing of theirs is downloaded.
import puppeteer from "puppeteer-core";

export const names = (process.env.BROWSERS ?? "chrome firefox").split(" ");

const paths = {
  chrome: process.env.CHROMIUM ?? "/usr/bin/chromium",
  firefox: process.env.FIREFOX ?? "/usr/bin/firefox-esr",
};

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
