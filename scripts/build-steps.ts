/** `npm run build`: runs the steps of the build one after the other, and says every few seconds which one it is at. Ends at the first that fails. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'

const steps = {
  'declarations (tsc)': 'tsc -p src/tsconfig.build.json',
  'library (rolldown)': 'npm run --silent build:library',
  'page (vite)': 'npm run --silent build:page',
  'browser extension (vite)': 'npm run --silent build:extension',
}

/** How often a step that takes longer is named again, in ms. */
const REMINDER_MS = 4000

rmSync('dist', { recursive: true, force: true })
for (const [name, command] of Object.entries(steps)) {
  const begun = performance.now()
  // To stderr, because `npm pack --json` prints its result to stdout.
  const say = (text: string): void => console.error(`build: ${name} ${text}`)
  const since = (): string => `${((performance.now() - begun) / 1000).toFixed(0)} s`
  say('...')
  const reminder = setInterval(() => say(`... ${since()}`), REMINDER_MS)
  const [status] = (await once(spawn(command, { shell: true, stdio: 'inherit' }), 'exit')) as [number | null]
  clearInterval(reminder)
  if (status !== 0) {
    say(`FAILED after ${since()}`)
    process.exit(status ?? 1)
  }
}
mkdirSync('reports', { recursive: true })
writeFileSync('reports/built', '')
