/** Names a task in texts, by its subagent and goal. */
import type { AsyncTaskInfo } from '../../machines/records.js'
import { toOneLine } from '../data/control-characters.js'
import { previewText } from '../features/output/bounded-text.js'

/** The maximum lengths of a name and of a goal, in characters. */
const NAME_CHARS = 100
const GOAL_CHARS = 200

/** Names a task, for example `subagent 'gold', goal "dig for gold"`. Line breaks and control characters are removed. */
export function taskName({ subagentName, goalPrompt }: Pick<AsyncTaskInfo, 'subagentName' | 'goalPrompt'>): string {
  return `subagent '${oneLine(subagentName, NAME_CHARS)}', goal ${JSON.stringify(oneLine(goalPrompt, GOAL_CHARS))}`
}

/** Names a note by its source and title, for example `schedule, "stand-up"`. */
export const noteName = ({ subagentName, goalPrompt }: Pick<AsyncTaskInfo, 'subagentName' | 'goalPrompt'>): string =>
  `${oneLine(subagentName, NAME_CHARS)}, ${JSON.stringify(oneLine(goalPrompt, GOAL_CHARS))}`

// Cuts the text before it replaces characters, because a goal may have millions of them.
const oneLine = (text: string, maxChars: number): string =>
  previewText(
    toOneLine(previewText(text.trimStart(), 4 * maxChars))
      .replace(/\s+/g, ' ')
      .trim(),
    maxChars,
  )
