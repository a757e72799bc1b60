/**
 * `npm run demo -- --crash`: starts a host with a store, which kills itself in the middle of its work, and then another one, which goes on. Reads
 * from the files of both what the agent was told.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** What the agent has read: one line for each message. */
export interface TranscriptLine {
  readonly deliveryId: string
  readonly results: readonly { readonly id: string; readonly status: string }[]
}

/** The lines of a file of JSON. */
export function readLines<Line>(file: string): Line[] {
  if (!existsSync(file)) return []
  const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean)
  return lines.map((line) => JSON.parse(line) as Line)
}

/** Runs the demo; returns its exit code. */
export async function runCrashDemo(): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-demo-'))
  const startedAt = Date.now()
  try {
    console.log('        a host is started')
    const first = await runHost(folder, startedAt)
    if (first !== 'SIGKILL') {
      throw new Error(`The first host ended with ${String(first)}; it should have killed itself.`)
    }
    console.log('        the host was killed (SIGKILL), and is started again')
    const second = await runHost(folder, startedAt)
    if (second !== 0) throw new Error(`The second host ended with ${String(second)}.`)
    return printLedger(folder) ? 0 : 1
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function runHost(folder: string, startedAt: number): Promise<number | string> {
  const host = fileURLToPath(new URL('crash-host.ts', import.meta.url))
  const child = spawn(process.execPath, ['--import', 'tsx', host, folder, String(startedAt)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  child.stdout.pipe(process.stdout, { end: false })
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null]
  return signal ?? code ?? 0
}

function printLedger(folder: string): boolean {
  const launched = readLines<{ readonly id: string }>(join(folder, 'launches')).map(({ id }) => id)
  const told = readLines<TranscriptLine>(join(folder, 'transcript')).flatMap(({ results }) => results)
  const timesTold = (id: string): number => told.filter((result) => result.id === id).length
  const ledger = {
    launched: launched.length,
    completed: told.filter(({ status }) => status === 'completed').length,
    failed: told.filter(({ status }) => status === 'failed').length,
    lost: launched.filter((id) => timesTold(id) === 0).length,
    duplicated: launched.filter((id) => timesTold(id) > 1).length,
  }
  console.log('\nLedger')
  for (const [name, count] of Object.entries(ledger)) {
    console.log(
      `  ${name.padEnd(11)} ${String(count).padStart(3)}${name === 'failed' ? '  (on purpose: thinker)' : ''}`,
    )
  }
  const isKept = ledger.launched > 0 && ledger.lost === 0 && ledger.duplicated === 0
  console.log(isKept ? '\nEvery result was delivered exactly once.' : '\nNot every result was delivered exactly once.')
  return isKept
}
