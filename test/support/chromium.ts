/** Finds and starts Chromium. */
import { existsSync } from 'node:fs'
import { chromium, type Browser } from 'playwright-core'

/** @throws Error when Chromium is missing, with the command that installs it */
export function chromiumPath(): string {
  const executable = process.env['CHROMIUM_PATH'] ?? '/usr/bin/chromium'
  if (existsSync(executable)) return executable
  throw new Error(
    `There is no browser at ${executable}. Install it with: apt-get update && apt-get install -y chromium ` +
      '(or name another Chromium in CHROMIUM_PATH).',
  )
}

/** Starts Chromium without a window. The caller must close it. */
export async function launchChromium(): Promise<Browser> {
  return chromium.launch({ executablePath: chromiumPath(), args: ['--no-sandbox'] })
}
