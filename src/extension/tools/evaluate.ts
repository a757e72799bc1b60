/** Runs a function of the caller in a page. */
import { BrowserError, ProtocolRefusal } from '../debuggee.js'
import { exceptionText } from './console-log.js'
import type { Element } from './element-handles.js'
import { OBJECT_GROUP, type Page } from './page.js'
import { navigatedError } from './perform.js'

const MAX_CHARS = 100_000
const STACK_CHARS = 4000

/** A page that redefines what scripts use can return anything. */
interface Answer {
  readonly json?: unknown
  readonly chars?: unknown
  readonly problem?: unknown
}

/** The page may return a promise; what it resolves to is converted to JSON in the page. */
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
  return json.length > ${MAX_CHARS} ? { chars: json.length } : { json }
}`

/**
 * @param source a function, which gets the element, or an expression
 * @returns the JSON of what it returns
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
        ...{ objectId, functionDeclaration: wrap(source, element !== undefined) },
        ...{ awaitPromise: true, returnByValue: true, userGesture: true },
      },
      { sessionId, signal },
    )
    if (exceptionDetails !== undefined) {
      throw new BrowserError('PAGE_ERROR', exceptionText(exceptionDetails).slice(0, STACK_CHARS))
    }
    return jsonOf(Object(result.value) as Answer)
  } catch (error) {
    throw navigatedError(error)
  } finally {
    signal.removeEventListener('abort', interrupt)
  }
}

/** The handle of the element, or of the global object, for scripts of the page. */
async function receiverOf({ debuggee }: Page, element: Element | undefined, signal: AbortSignal): Promise<string> {
  if (element === undefined) {
    const params = { expression: 'globalThis', objectGroup: OBJECT_GROUP }
    const { result } = await debuggee.send('Runtime.evaluate', params, { signal })
    return result.objectId ?? ''
  }
  const { backendNodeId, frame } = element
  const params = { backendNodeId, objectGroup: OBJECT_GROUP }
  const { object } = await debuggee.send('DOM.resolveNode', params, { sessionId: frame.sessionId, signal })
  if (object.objectId === undefined) throw new ProtocolRefusal('DOM.resolveNode', 'There is no such element.')
  return object.objectId
}

function jsonOf({ json, chars, problem }: Answer): string {
  if (typeof json === 'string' && json.length <= MAX_CHARS) return json
  if (typeof chars === 'number') {
    throw new BrowserError(
      'RESULT_TOO_LARGE',
      `The result has ${chars} characters of JSON; at most ${MAX_CHARS} are returned. Return less, or a part at a time.`,
    )
  }
  throw new BrowserError('RESULT_NOT_JSON', `The result cannot be written as JSON: ${String(problem).slice(0, 500)}`)
}
