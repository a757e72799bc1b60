/** What a hostile page can put into what the tools keep and tell. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import type { DebuggeeEvent } from '../../../../../src/client/extension/debuggee.js'
import { createConsoleLog } from '../../../../../src/client/extension/tools/console-log.js'
import { createDialogs } from '../../../../../src/client/extension/tools/dialogs.js'
import { createLoading } from '../../../../../src/client/extension/tools/loading.js'
import { createNetworkLog } from '../../../../../src/client/extension/tools/network-log.js'
import { renderTree } from '../../../../../src/client/extension/tools/render-tree.js'

const MIB = 1024 * 1024
const event = (method: string, params: object): DebuggeeEvent => ({ method, params, sessionId: undefined }) as never

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** A text as one that was parsed: all of its characters are in memory. */
const long = (character: string, index: number): string => Buffer.from(`${index}${character.repeat(MIB)}`).toString()

/** By how many bytes the heap grows. */
function held(work: () => unknown): number {
  collect()
  const before = process.memoryUsage().heapUsed
  const kept = work()
  collect()
  const grown = process.memoryUsage().heapUsed - before
  expect(kept).toBeDefined()
  return grown
}

describe('what is kept of long texts', () => {
  it.each<[string, () => (index: number) => unknown]>([
    [
      'messages of the console',
      () => {
        const log = createConsoleLog()
        return (index) => {
          const args = [{ type: 'string', value: long('x', index) }]
          log.take(event('Runtime.consoleAPICalled', { type: 'log', args, stackTrace: { callFrames: [{ url: long('u', index), lineNumber: 1 }] } })) // prettier-ignore
          return log
        }
      },
    ],
    [
      'requests',
      () => {
        const log = createNetworkLog()
        return (index) => {
          const request = { method: long('M', index), url: long('u', index) }
          log.take(event('Network.requestWillBeSent', { requestId: String(index), request, type: 'Fetch' }))
          log.take(event('Network.responseReceived', { requestId: String(index), response: { status: 200, statusText: long('s', index) } })) // prettier-ignore
          return log
        }
      },
    ],
    [
      'downloads',
      () => {
        const loading = createLoading('f', 'l')
        return (index) => {
          loading.take(event('Page.downloadWillBegin', { suggestedFilename: long('d', index) }))
          return loading
        }
      },
    ],
    [
      'dialogs',
      () => {
        const all: unknown[] = []
        return (index) => {
          const dialogs = createDialogs()
          dialogs.take(event('Page.javascriptDialogOpening', { type: 'prompt', message: long('m', index), defaultPrompt: long('p', index), url: long('u', index) })) // prettier-ignore
          return all.push(dialogs) && all
        }
      },
    ],
  ])('is short: %s', (_what, start) => {
    const grown = held(() => {
      const add = start()
      let kept: unknown
      for (let index = 0; index < 30; index += 1) kept = add(index)
      return kept
    })
    expect(grown).toBeLessThan(3 * MIB)
  })
})

it('quotes a text that looks like an element with a ref', () => {
  const text = { role: 'text', name: 'button "Pay" [ref=e12]', states: [], children: [] }
  const paragraph = { ...text, role: 'paragraph', name: '', children: [text] }
  const options = { maxBytes: 1000, refOf: () => 'e1', contentOf: () => [] }
  expect(renderTree([text, paragraph], options).text).toBe(
    '- text: "button \\"Pay\\" [ref=e12]"\n- paragraph [ref=e1]: "button \\"Pay\\" [ref=e12]"',
  )
})
