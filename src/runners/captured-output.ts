/** What a program prints while it runs: told to the task at once, and kept in part for its end. */
import type { RunContext } from '../engine/runner.js'
import { preview } from '../preview.js'
import { createByteTail, type ByteTail } from './byte-tail.js'
import { createLineSplitter } from './lines.js'
import { needsWholeOutput } from './output-parsers.js'
import { ProcessError } from './process-error.js'
import type { ProcessSettings } from './process-options.js'

/** How much of a program's stderr is kept, in bytes: enough for what an error carries of it. */
const STDERR_BYTES = 8192

/** The reader of a program's two outputs. */
export interface CapturedOutput {
  readonly stdout: ByteTail
  readonly stderr: ByteTail
  /** Throws when there is more than may be kept, and all of it would be needed. */
  readonly onStdout: (chunk: Uint8Array) => void
  readonly onStderr: (chunk: Uint8Array) => void
  /** Both outputs are closed. */
  readonly end: () => void
}

/** Makes a reader that appends to the task's output and reports progress. */
export function captureOutput(settings: ProcessSettings, context: RunContext): CapturedOutput {
  const { command, maxOutputBytes, parse } = settings
  const lines = progressLines(settings, context)
  const stdout = openStream(maxOutputBytes, (text) => {
    context.append(text)
    lines?.push(text)
  })
  const stderr = openStream(STDERR_BYTES, (text) => context.append(text))
  return {
    stdout: stdout.tail,
    stderr: stderr.tail,
    onStdout: (chunk) => {
      stdout.push(chunk)
      if (!stdout.tail.hasDropped || !needsWholeOutput(parse)) return
      const message = `Command ${preview(command)} was stopped: it printed more than maxOutputBytes (${maxOutputBytes} bytes), and 'parse' needs all of it.`
      throw new ProcessError('PROCESS_OUTPUT', message, { command, stderr: stderr.tail.read().text })
    },
    onStderr: stderr.push,
    end: () => {
      stdout.end()
      stderr.end()
      lines?.end()
    },
  }
}

/** Decodes a stream of UTF-8 whose chunks end anywhere. */
function openStream(keptBytes: number, onText: (text: string) => void) {
  const tail = createByteTail(keptBytes)
  const decoder = new TextDecoder()
  const tell = (text: string): void => {
    if (text !== '') onText(text)
  }
  return {
    tail,
    push: (chunk: Uint8Array): void => {
      tail.push(chunk)
      tell(decoder.decode(chunk, { stream: true }))
    },
    end: (): void => tell(decoder.decode()),
  }
}

function progressLines({ progress }: ProcessSettings, context: RunContext) {
  if (progress === undefined) return undefined
  return createLineSplitter((line) => {
    let told
    try {
      told = progress(line)
    } catch {
      // A line that cannot be read tells nothing; the program is none the worse for it.
      return
    }
    if (told !== undefined) context.report(told)
  })
}
