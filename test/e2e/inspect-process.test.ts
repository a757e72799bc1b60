/** N6: an inspector does not keep its process alive, with or without a relay. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { startRelay } from '../support/inspector-relay.js'

const source = (path: string): string => JSON.stringify(new URL(`../../src/${path}`, import.meta.url).href)

/** Runs a program until it exits; returns what it printed. */
async function run(url: string, rest: string): Promise<{ code: unknown; printed: string }> {
  const program = `
    import { AsyncTaskManager } from ${source('async-tasks/manager.ts')}
    import { createInspector } from ${source('observability/inspect/index.ts')}
    const inspector = createInspector({ url: '${url}', onError: () => console.log('down') })
    const manager = new AsyncTaskManager({ inspect: inspector })
    manager.registerTask({ id: 'a', subagentName: 's', goalPrompt: 'g', abortController: new AbortController() })
    manager.completeTask('a', {})
    ${rest}`
  const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '--eval', program], {
    cwd: fileURLToPath(new URL('../../', import.meta.url)),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let printed = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text))
  const [code] = (await once(child, 'close')) as unknown[]
  return { code, printed }
}

it('N6: a process exits while its inspector is connected, and close sends everything before', async () => {
  const relay = await startRelay()
  const received = await relay.received()
  expect(await run(relay.url, `await inspector.close(); console.log(inspector.stats.sent)`)).toEqual({
    code: 0,
    printed: '12\n',
  })
  await received.until(() => received.messages.length === 12)
  // The program keeps itself alive until everything is sent; the inspector does not.
  const connected = `const wait = setInterval(() => { if (inspector.stats.sent === 12) clearInterval(wait) }, 5)`
  expect(await run(relay.url, connected)).toEqual({ code: 0, printed: '' })
}, 30_000)

it('N6: a process exits while there is no relay', async () => {
  const relay = await startRelay()
  await relay.stop()
  expect((await run(relay.url, '')).code).toBe(0)
  expect(await run(relay.url, 'await inspector.close()')).toEqual({ code: 0, printed: 'down\n' })
}, 30_000)
