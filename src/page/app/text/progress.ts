/** Progress in words. */
import type { PageTask } from '../../wire.js'
import { count } from './format.js'
import { LOOKS, type Look } from './states.js'

type Progress = NonNullable<PageTask['progress']>

export interface ShownProgress {
  readonly text: string
  /** The share that is done, from 0 to 1; absent if unknown. */
  readonly part?: number
}

/**
 * Returns the progress of a task; undefined if there is none to show. While a task has not ended, its reported progress is shown only in the states
 * `running` and `wrapping`. For a task that has failed or was cancelled, the last progress is shown.
 */
export function progressOf(task: PageTask): ShownProgress | undefined {
  const { progress, state, endedAt } = task
  const shown = progress && { text: progressText(progress), ...partOf(progress) }
  if (endedAt !== undefined) {
    if (shown === undefined || state === 'completed') return undefined
    // A run may report 100 % and then fail or be cancelled.
    return {
      ...shown,
      text: `${Math.round((shown.part ?? 0) * 100) === 100 ? 'had reported' : 'stopped at'} ${shown.text}`,
    }
  }
  const { hasProgress }: Look = LOOKS[state]
  if (hasProgress !== true) return undefined
  return commandProgress(task, shown) ?? shown
}

/** Formats progress: `40 % · Reading`, or `12 so far · Reading` without a total. If nothing is done yet, only the message. */
export function progressText({ progress, total, message = '' }: Progress): string {
  if (progress === 0 && message !== '') return message
  const done = total === undefined ? `${count(progress)} so far` : `${Math.round(shareOf(progress, total) * 100)} %`
  return message === '' ? done : `${done} · ${message}`
}

function partOf({ progress, total }: Progress): { part?: number } {
  return total === undefined ? {} : { part: shareOf(progress, total) }
}

export function shareOf(progress: number, total: number): number {
  return total > 0 ? Math.min(1, Math.max(0, progress / total)) : 0
}

/**
 * Returns the progress of a task with several commands, such as `2 of 4: slow`.
 * @param shown the progress of the current command
 */
function commandProgress(
  { commands = [], commandCount = 0 }: PageTask,
  shown: ShownProgress | undefined,
): ShownProgress | undefined {
  const index = commands.findIndex(({ state }) => state === 'running')
  const command = commands[index]
  if (command === undefined || commandCount < 2) return undefined
  const words = `${index + 1} of ${commandCount}: ${command.tool}`
  return { text: shown ? `${words} · ${shown.text}` : words, part: (index + (shown?.part ?? 0)) / commandCount }
}
