/**
 * Disposes a host that runs programs when a signal ends the host. Otherwise its programs would outlive it. Each program leads its own process group,
 * so neither Ctrl-C in a terminal nor a signal to the host reaches the program. Nor does Node emit an `exit` event on a signal.
 */
import { clearLongTimeout, elapsedMs, setLongTimeout, systemClock } from '../system/clock.js'
import { InvalidInputError } from '../errors.js'
import { isNode } from '../system/node-builtins.js'
import { checkOptions, integerFrom, limitFrom, objectWith, type OptionTypes } from '../protocol/option-checks.js'

/** The signals that end a host, with their numbers, which are the same on every platform. */
const SIGNALS = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const
type EndingSignal = keyof typeof SIGNALS
const signalNames = Object.keys(SIGNALS) as EndingSignal[]

/** The default time limit of the disposal, in ms. It is shorter than the 10 s that Docker waits before it kills a container. */
const DEFAULT_LIMIT_MS = 8000

/**
 * How long after its first arrival a signal has to come again to end the process at once, in ms. Before that, it belongs to the same request: a script of
 * npm receives the SIGINT of Ctrl-C from the terminal and from npm, and clients of MCP servers send several different signals within half a second.
 */
const REPEAT_MS = 1000

/** What can be disposed: an object for `await using`, or a function. */
export type DisposeTarget = { [Symbol.asyncDispose](): PromiseLike<unknown> } | (() => unknown)

/** Options of `disposeOnSignals`. */
export interface DisposeOnSignalsOptions {
  /**
   * A stream whose end begins the disposal, like a signal. Use it for a program that a client starts over stdio: the client closes the stdin of the
   * program, then sends SIGTERM and later SIGKILL if the program does not exit.
   */
  readonly input?: NodeJS.ReadableStream
  /** The exit code if the disposal succeeds. Default: 128 plus the signal number, or 0 at the end of `input`. */
  readonly exitCode?: number
  /** The time limit of the disposal, in ms. When it has passed, the process exits with code 1. Infinity for no limit. Default 8000. */
  readonly limitMs?: number
}

const optionTypes: OptionTypes<DisposeOnSignalsOptions> = {
  input: objectWith('a readable stream', 'once'),
  exitCode: integerFrom(0),
  limitMs: limitFrom(0),
}

/** The number of disposals in progress. The process exits when the last of them has ended. */
let underWay = 0
let hasFailed = false

/** The codes of the errors that a disposal causes in code that waits for a task. */
const DISPOSAL_CODES: readonly unknown[] = ['TASK_CANCELLED', 'DISPOSED', 'SUSPENDED']
const MAX_CAUSES = 10

/** Whether a disposal has caused this error. Follows the chain of `cause`. */
function isOfDisposal(error: unknown): boolean {
  let at = error
  for (let level = 0; at instanceof Error && level < MAX_CAUSES; level += 1) {
    if (DISPOSAL_CODES.includes((at as { readonly code?: unknown }).code)) return true
    at = at.cause
  }
  return false
}

/**
 * Prevents an uncaught error from ending the process before the disposal has ended. Node also reports unhandled rejections as uncaught errors, for
 * example if `await result` rejects at the top level of a module. If the host has a listener of its own, that listener handles errors that no
 * disposal has caused.
 */
function onUncaught(error: unknown): void {
  if (isOfDisposal(error) || process.listenerCount('uncaughtException') > 1) return
  hasFailed = true
  console.error(error)
}

/**
 * On SIGINT, SIGTERM or SIGHUP, disposes `target` and then exits the process. When it exits, all programs that `processRunner` and `mcpInstance` have
 * started have ended. The first signal begins the disposal, and different signals after it change nothing. If a signal comes again at least one second
 * after it first came, these programs are killed and the process exits at once.
 *
 * During the disposal, an uncaught error with the code `TASK_CANCELLED` or `DISPOSED` is ignored. Any other uncaught error is printed, and the exit code is 1. You
 * can handle such errors yourself with a listener for `uncaughtException`.
 *
 * You may call this function several times. It has no effect outside Node.
 * @param target what to dispose: the result of `createAgentTasks`, a manager, a server, or a function
 * @returns an unsubscribe function
 * @throws INVALID_INPUT for an invalid target or option
 * @throws INVALID_SETTING for a number out of range
 */
export function disposeOnSignals(target: DisposeTarget, options: DisposeOnSignalsOptions = {}): () => void {
  const dispose = disposerOf(target)
  checkOptions(options, optionTypes)
  const { input, exitCode, limitMs = DEFAULT_LIMIT_MS } = options
  if (!isNode) return () => undefined
  const arrivals = new Map<NodeJS.Signals, number>()
  let hasBegun = false

  const begin = (code: number): void => {
    if (hasBegun) return
    hasBegun = true
    underWay += 1
    if (underWay === 1) process.on('uncaughtException', onUncaught)
    // Without `unref`, the timer would keep the process alive after the disposal.
    const timer = setLongTimeout(systemClock, () => process.exit(1), limitMs)
    ;(timer.current as NodeJS.Timeout | undefined)?.unref()
    new Promise((resolve) => resolve(dispose()))
      .catch((error: unknown) => {
        hasFailed = true
        console.error(error)
      })
      .finally(() => {
        clearLongTimeout(systemClock, timer)
        underWay -= 1
        if (underWay > 0) return
        process.off('uncaughtException', onUncaught)
        process.exit(hasFailed ? 1 : code)
      })
  }
  const onSignal = (name: NodeJS.Signals): void => {
    const code = 128 + SIGNALS[name as EndingSignal]
    const now = elapsedMs(systemClock)
    const arrival = arrivals.get(name)
    arrivals.set(name, arrival ?? now)
    if (arrival !== undefined && now - arrival >= REPEAT_MS) process.exit(code)
    else begin(exitCode ?? code)
  }
  const onEnd = (): void => begin(exitCode ?? 0)
  for (const name of signalNames) process.on(name, onSignal)
  for (const event of ['end', 'close']) input?.on(event, onEnd)
  return () => {
    for (const name of signalNames) process.off(name, onSignal)
    for (const event of ['end', 'close']) input?.off(event, onEnd)
  }
}

function disposerOf(target: DisposeTarget): () => unknown {
  if (typeof target === 'function') return target
  const { [Symbol.asyncDispose]: dispose } = Object(target) as Record<symbol, unknown>
  if (typeof dispose === 'function') return () => dispose.call(target) as unknown
  throw new InvalidInputError('target', target, 'an object with [Symbol.asyncDispose], or a function')
}
