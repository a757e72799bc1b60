/**
 * Ends a host that runs programs. They lead process groups of their own, so neither the Ctrl-C of a terminal nor a signal to their host
 * reaches them, and Node emits no `exit` event when a signal ends the host: the programs would outlive it.
 */
import { clearLongTimeout, elapsedMs, setLongTimeout, systemClock } from '../clock.js'
import { InvalidInputError } from '../errors.js'
import { isNode } from '../node-builtins.js'
import { checkOptions, integerFrom, limitFrom, objectWith, type OptionTypes } from '../protocol/option-checks.js'

/** The numbers of the signals that end a host, the same on every platform. */
const SIGNALS = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const
type EndingSignal = keyof typeof SIGNALS
const signalNames = Object.keys(SIGNALS) as EndingSignal[]

/** Less than the 10 s that Docker waits before it kills a container. */
const DEFAULT_LIMIT_MS = 8000

/** npm passes the Ctrl-C of a terminal on to its script, which gets it from the terminal as well. */
const REPEAT_MS = 500

/** What a host disposes: anything for `await using`, or a function. */
export type DisposeTarget = { [Symbol.asyncDispose](): PromiseLike<unknown> } | (() => unknown)

/** Options of `disposeOnSignals`. */
export interface DisposeOnSignalsOptions {
  /**
   * A stream whose end counts as the first signal. For a program that a client starts over stdio: the client closes its stdin, and
   * sends SIGTERM to a program that does not end soon, and SIGKILL after that.
   */
  readonly input?: NodeJS.ReadableStream
  /** The exit code after a complete disposal. Default: 128 plus the number of the signal, 0 at the end of `input`. */
  readonly exitCode?: number
  /** The time limit of the disposal in ms, Infinity for none; then the process exits with 1. Default 8000. */
  readonly limitMs?: number
}

const optionTypes: OptionTypes<DisposeOnSignalsOptions> = {
  input: objectWith('a readable stream', 'once'),
  exitCode: integerFrom(0),
  limitMs: limitFrom(0),
}

/** Disposals that have begun: with several calls, the process exits after the last. */
let underWay = 0
let hasFailed = false

/**
 * On SIGINT, SIGTERM or SIGHUP, disposes and then exits the process; all programs that `processRunner` and `mcpInstance` started have
 * ended then. A second signal exits at once and kills them. The same signal within half a second counts once.
 *
 * It may be called several times. Outside Node it does nothing.
 * @param target what to dispose: the result of `createAgentTasks`, a manager, a server, or a function
 * @returns an unsubscribe function
 * @throws InvalidInputError, InvalidSettingError for an invalid argument
 */
export function disposeOnSignals(target: DisposeTarget, options: DisposeOnSignalsOptions = {}): () => void {
  const dispose = disposerOf(target)
  checkOptions(options, optionTypes)
  const { input, exitCode, limitMs = DEFAULT_LIMIT_MS } = options
  if (!isNode) return () => undefined
  let first: { readonly cause: EndingSignal | 'input'; readonly at: number } | undefined

  const begin = (cause: EndingSignal | 'input', code: number): void => {
    first = { cause, at: elapsedMs(systemClock) }
    underWay += 1
    // Nothing waits for the timer alone: a process without work ends by itself.
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
        if (underWay === 0) process.exit(hasFailed ? 1 : code)
      })
  }
  const onSignal = (name: NodeJS.Signals): void => {
    const code = 128 + SIGNALS[name as EndingSignal]
    if (first === undefined) begin(name as EndingSignal, exitCode ?? code)
    else if (first.cause !== name || elapsedMs(systemClock) - first.at >= REPEAT_MS) process.exit(code)
  }
  const onEnd = (): void => {
    if (first === undefined) begin('input', exitCode ?? 0)
  }
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
