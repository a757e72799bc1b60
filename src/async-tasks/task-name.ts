/** Which task a text is about: its subagent and its goal, in a part of one line. */
import type { AsyncTaskInfo } from '../../machines/records.js'
import { toOneLine } from '../text/control-characters.js'
import { previewText } from './output/bounded-text.js'

/** The maximum lengths, in characters. */
const NAME_CHARS = 100
const GOAL_CHARS = 200

/** As in `subagent 'gold', goal "dig for gold"`. Without line breaks and control characters, however the task was named. */
export function taskName({ subagentName, goalPrompt }: Pick<AsyncTaskInfo, 'subagentName' | 'goalPrompt'>): string {
  return `subagent '${oneLine(subagentName, NAME_CHARS)}', goal ${JSON.stringify(oneLine(goalPrompt, GOAL_CHARS))}`
}

/** What has made a note and what it is about, as in `schedule, "stand-up"`. */
export const noteName = ({ subagentName, goalPrompt }: Pick<AsyncTaskInfo, 'subagentName' | 'goalPrompt'>): string =>
  `${oneLine(subagentName, NAME_CHARS)}, ${JSON.stringify(oneLine(goalPrompt, GOAL_CHARS))}`

// Only what may be shown is read: a goal may have millions of characters.
const oneLine = (text: string, maxChars: number): string =>
  previewText(
    toOneLine(previewText(text.trimStart(), 4 * maxChars))
      .replace(/\s+/g, ' ')
      .trim(),
    maxChars,
  )
