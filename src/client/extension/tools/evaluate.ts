/** Evaluates a caller's function in a page. */
import { BrowserError, ProtocolRefusal } from '../debuggee.js'
import { exceptionText } from './console-log.js'
import type { Element } from './element-handles.js'
import { mainFrameOf, worldOf } from './frames.js'
import { indented } from './kept-text.js'
import { OBJECT_GROUP, type Page } from './page.js'
import { navigatedError } from './perform.js'

const MAX_CHARS = 100_000
const STACK_CHARS = 4000

/** The answer of a page. Its fields are unknown, because a page can redefine globals and return any value. */
interface Answer {
  readonly json?: unknown
  readonly chars?: unknown
  readonly problem?: unknown
}

/** Makes a function of the caller's source. It awaits a promise, and converts the value to JSON in the page, where the value's `toJSON` can run. */
const wrap = (source: string, isOfElement: boolean): string => `async function () {
  const given = (${source}
  )
  const value = await (typeof given === 'function' ? given(${isOfElement ? 'this' : ''}) : given)
  let json
  try {
    json = JSON.stringify(value, null, 2) ?? 'undefined'
  } catch (error) {
    return { problem: String(error) }
  }
  if (typeof json !== 'string') return {}
  return json.length > ${MAX_CHARS} ? { chars: json.length } : { json }
}`

/**
 * @param source an expression, or a function, which receives the element if there is one
 * @returns the result as JSON
 */
export async function evaluate(
  page: Page,
  source: string,
  element: Element | undefined,
  signal: AbortSignal,
): Promise<string> {
  const { debuggee } = page
  const sessionId = element?.frame.sessionId
  const interrupt = (): void =>
    void debuggee.send('Runtime.terminateExecution', undefined, { sessionId }).catch(() => undefined)
  signal.addEventListener('abort', interrupt, { once: true })
  try {
    const objectId = await receiverOf(page, element, signal)
    const { result, exceptionDetails } = await debuggee.send(
      'Runtime.callFunctionOn',
      {
        objectId,
        functionDeclaration: wrap(source, element !== undefined),
        awaitPromise: true,
        returnByValue: true,
        userGesture: true,
      },
      { sessionId, signal },
    )
    if (exceptionDetails !== undefined) {
      throw new BrowserError('PAGE_ERROR', indented(exceptionText(exceptionDetails).slice(0, STACK_CHARS)))
    }
    return jsonOf(Object(result.value) as Answer)
  } catch (error) {
    throw navigatedError(error)
  } finally {
    signal.removeEventListener('abort', interrupt)
  }
}

/**
 * Returns a handle of the element, or of the global object, for the caller's function. The handle is taken before the document is checked, and is
 * invalid in any other document. So the function never runs in an unchecked document.
 */
async function receiverOf(page: Page, element: Element | undefined, signal: AbortSignal): Promise<string> {
  const frame = element?.frame ?? mainFrameOf(page)
  const objectId = element === undefined ? await globalOf(page, signal) : await objectOf(page, element, signal)
  await worldOf(page, frame, signal)
  return objectId
}

async function globalOf({ debuggee }: Page, signal: AbortSignal): Promise<string> {
  const params = { expression: 'globalThis', objectGroup: OBJECT_GROUP }
  const { result } = await debuggee.send('Runtime.evaluate', params, { signal })
  return result.objectId ?? ''
}

async function objectOf({ debuggee }: Page, { backendNodeId, frame }: Element, signal: AbortSignal): Promise<string> {
  const params = { backendNodeId, objectGroup: OBJECT_GROUP }
  const { object } = await debuggee.send('DOM.resolveNode', params, { sessionId: frame.sessionId, signal })
  if (object.objectId === undefined) throw new ProtocolRefusal('DOM.resolveNode', 'There is no such element.')
  return object.objectId
}

/** A page can replace `JSON.stringify`, so the result is parsed and serialized again. */
function jsonOf({ json, chars, problem }: Answer): string {
  if (json === 'undefined') return json
  const written = typeof json === 'string' && json.length <= MAX_CHARS ? rewritten(json) : undefined
  if (written !== undefined && written.length <= MAX_CHARS) return written
  if (typeof chars === 'number' || written !== undefined) {
    throw new BrowserError(
      'RESULT_TOO_LARGE',
      `The result has ${Number(chars ?? written?.length)} characters of JSON; at most ${MAX_CHARS} are returned. Return less, or a part at a time.`,
    )
  }
  const why =
    typeof problem === 'string' ? indented(problem.slice(0, 500)) : 'the page returned something that is not JSON.'
  throw new BrowserError('RESULT_NOT_JSON', `The result cannot be written as JSON: ${why}`)
}

function rewritten(json: string): string | undefined {
  try {
    return JSON.stringify(JSON.parse(json), null, 2)
  } catch {
    return undefined
  }
}
