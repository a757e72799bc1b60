/** N6, in a process of its own: an inspector keeps none alive, with a relay and without. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { startRelay } from '../../support/inspector-relay.js'

const source = (path: string): string => JSON.stringify(new URL(`../../../src/${path}`, import.meta.url).href)

/** Runs a program until it ends by itself; returns what it printed. */
async function run(url: string, rest: string): Promise<{ code: unknown; printed: string }> {
  const program = `
    import { AsyncTaskManager } from ${source('async-tasks/manager.ts')}
    import { createInspector } from ${source('inspect/index.ts')}
    const inspector = createInspector({ url: '${url}', onError: () => console.log('down') })
    const manager = new AsyncTaskManager({ inspect: inspector })
    manager.registerTask({ id: 'a', subagentName: 's', goalPrompt: 'g', abortController: new AbortController() })
    manager.completeTask('a', {})
    ${rest}`
  const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '--eval', program], {
    cwd: fileURLToPath(new URL('../../../', import.meta.url)),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let printed = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text))
  const [code] = (await once(child, 'close')) as unknown[]
  return { code, printed }
}

it('N6: ends by itself while the inspector is connected, and with close has sent everything before', async () => {
  const relay = await startRelay()
  const received = await relay.received()
  expect(await run(relay.url, `await inspector.close(); console.log(inspector.stats.sent)`)).toEqual({
    code: 0,
    printed: '12\n',
  })
  await received.until(() => received.messages.length === 12)
  // The timer ends the program's own wait for the connection, not that of the inspector.
  const connected = `const wait = setInterval(() => { if (inspector.stats.sent === 12) clearInterval(wait) }, 5)`
  expect(await run(relay.url, connected)).toEqual({ code: 0, printed: '' })
}, 30_000)

it('N6: ends by itself while there is no relay', async () => {
  const relay = await startRelay()
  await relay.stop()
  expect((await run(relay.url, '')).code).toBe(0)
  expect(await run(relay.url, 'await inspector.close()')).toEqual({ code: 0, printed: 'down\n' })
}, 30_000)
