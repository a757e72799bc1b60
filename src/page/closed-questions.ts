/** Questions that were answered or withdrawn, as the journal keeps them. */
import type { TaskAnswer, TaskQuestion } from '../../machines/records.js'
import { jsonPieces } from '../data/json-pieces.js'
import { beginningOf, heldBytes } from './texts.js'
import type { ClosedQuestion, CutValue } from './wire.js'

/** The maximum lengths of the kept question and of the kept answer, in UTF-16 units. */
const MAX_MESSAGE = 2000
const MAX_CONTENT = 4000

/** The approximate size of a closed question without its texts, in bytes. */
const BYTES = 200

/** The names of these actions in the list of a task's events. */
export const CLOSED_WORDS: Readonly<Record<ClosedQuestion['action'], string>> = {
  accept: 'answered',
  decline: 'declined',
  cancel: 'dismissed',
  withdrawn: 'question withdrawn',
}

/** @param answer undefined if the question was withdrawn */
export function closedQuestion(
  { id, message, askedAt }: TaskQuestion,
  answer: TaskAnswer | undefined,
  closedAt: number,
): ClosedQuestion {
  const content = answer?.content
  return {
    id,
    message: beginningOf(message, MAX_MESSAGE),
    askedAt,
    closedAt,
    action: answer?.action ?? 'withdrawn',
    ...(answer !== undefined && { by: 'host' }),
    ...(content !== undefined && { content: beginningOfJson(content) }),
  }
}

export const answerBytes = ({ id, message, content }: ClosedQuestion): number =>
  BYTES + heldBytes(id) + heldBytes(message) + heldBytes(content?.text)

function beginningOfJson(value: unknown): CutValue {
  let text = ''
  for (const piece of jsonPieces(value)) {
    text += piece
    if (text.length > MAX_CONTENT) break
  }
  const kept = beginningOf(text, MAX_CONTENT)
  return { type: 'json', text: kept, bytes: Buffer.byteLength(kept), isCut: kept.length < text.length }
}
