/** Captures the output of a running program. The output is appended to the task at once, and a part of it is kept for `parse` and for errors. */
import { ByteTail, isContinuation } from '../engine/byte-tail.js'
import type { RunContext } from '../engine/runner.js'
import { nodeBuiltin } from '../system/node-builtins.js'
import { preview } from '../data/preview.js'
import { createLineSplitter, MAX_LINE_CHARS } from '../data/lines.js'
import { leftOut, LOST_OUTPUT, needsWholeOutput, type KeptText } from './output-parsers.js'
import { ProcessError } from './process-error.js'
import { resultSoFar } from './agents/agent-output.js'
import { followSession, printedText } from './printed-session.js'
import type { ProcessSettings } from './process-options.js'

/** How much of stderr is kept, in bytes. It is enough for the part of stderr that an error includes. */
const STDERR_BYTES = 8192

/** Reads a program's stdout and stderr. */
export interface CapturedOutput {
  readonly stdout: () => KeptText
  readonly stderr: () => KeptText
  /** Throws when stdout is longer than `maxOutputBytes` and the parser needs all of it. */
  readonly onStdout: (chunk: Uint8Array) => void
  readonly onStderr: (chunk: Uint8Array) => void
  /** Call it where bytes of an output were left out because the output was too long. Throws as `onStdout` does. */
  readonly onGap: (output: 'stdout' | 'stderr', bytes: number) => void
  /** Call it when a part of stdout could not be kept. */
  readonly onLost: () => void
  /** Call it when stdout and stderr are closed. */
  readonly end: () => void
  /** Appends a line to the output of the task that the program has not printed. */
  readonly note: (line: string) => void
}

/**
 * Creates a reader that appends to the task's output and reports progress.
 * @param newSession the session that the program was given; it is noted as soon as the program prints something
 */
export function captureOutput(settings: ProcessSettings, context: RunContext, newSession?: string): CapturedOutput {
  const { command, maxOutputBytes, parse } = settings
  const lines = progressLines(settings, context)
  const cwd = (): string => nodeBuiltin('node:path').resolve(settings.cwd ?? '.')
  const noteSession = (id: string): void => context.setSession(id, { cwd: cwd() })
  const results = printedResults(settings, () => stdout.read().text, context)
  const session = settings.session && followSession(settings.session.from, noteSession)
  let given = newSession
  const stdout = openStream(maxOutputBytes, (text) => {
    context.append(text)
    if (given !== undefined) noteSession(given)
    given = undefined
    lines?.push(text)
    session?.push(text)
    results?.push(text)
  })
  const stderr = openStream(STDERR_BYTES, (text) => context.append(text))
  let isLost = false
  const checkWhole = (): void => {
    if (!stdout.hasDropped() || !needsWholeOutput(parse)) return
    const message = `Command ${preview(command)} was stopped: it printed more than maxOutputBytes (${maxOutputBytes} bytes), and 'parse' needs all of it.`
    throw new ProcessError('PROCESS_OUTPUT', message, { command, stderr: stderr.read().text })
  }
  return {
    stdout: () => ({ ...stdout.read(), isLost }),
    stderr: stderr.read,
    onStdout: (chunk) => {
      stdout.push(chunk)
      checkWhole()
    },
    onStderr: stderr.push,
    onGap: (output, bytes) => {
      if (output === 'stderr') stderr.skip(bytes)
      else {
        stdout.skip(bytes)
        checkWhole()
      }
    },
    onLost: () => {
      isLost = true
      context.append(`\n${LOST_OUTPUT}\n`)
    },
    end: () => {
      stdout.end()
      stderr.end()
      lines?.end()
      session?.end(stdout.read().text)
    },
    note: (line) => context.append(`\n${line}\n`),
  }
}

/** Decodes UTF-8 chunks. A chunk may end within a character. */
function openStream(keptBytes: number, onText: (text: string) => void) {
  const tail = new ByteTail(keptBytes)
  const decoder = new TextDecoder()
  const emit = (text: string): void => {
    if (text !== '') onText(text)
  }
  return {
    push: (chunk: Uint8Array): void => {
      tail.append(chunk)
      emit(decoder.decode(chunk, { stream: true }))
    },
    skip: (bytes: number): void => {
      emit(`${decoder.decode()}\n${leftOut(bytes)}\n`)
      tail.skip(bytes)
    },
    end: (): void => emit(decoder.decode()),
    hasDropped: (): boolean => tail.start > 0,
    read: () => keptText(tail),
  }
}

/** The kept bytes as text, from the first whole character. */
export function keptText({ bytes, start }: ByteTail): KeptText {
  let first = 0
  if (start > 0) while (isContinuation(bytes[first])) first += 1
  return { text: new TextDecoder().decode(bytes.subarray(first)), droppedBytes: start + first }
}

/** Offers each result of an agent that may go on after it. */
function printedResults({ preset, command }: ProcessSettings, printed: () => string, context: RunContext) {
  if (preset?.goesOn !== true) return undefined
  return createLineSplitter((line) => {
    // A line of this length may have been cut.
    if (line.length < MAX_LINE_CHARS && printedText(preset.result, line) === undefined) return
    const output = resultSoFar(preset, { command, stdout: printed(), stderr: '' })
    if (output !== undefined) context.offer(output)
  })
}

function progressLines({ progress }: ProcessSettings, context: RunContext) {
  if (progress === undefined) return undefined
  return createLineSplitter((line) => {
    let reported
    try {
      reported = progress(line)
    } catch {
      // A line that cannot be read reports no progress, and the program continues.
      return
    }
    if (reported !== undefined) context.report(reported)
  })
}
