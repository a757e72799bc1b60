/** Describes how a question was closed. */
import type { PageTaskDetail } from '../../wire.js'

type Closed = NonNullable<PageTaskDetail['answers']>[number]

const WORDS: Readonly<Record<Closed['action'], string>> = {
  accept: 'Answered',
  decline: 'Declined',
  cancel: 'Dismissed without an answer',
  withdrawn: 'Withdrawn: the run stopped waiting for an answer',
}
const BY: Readonly<Record<NonNullable<Closed['by']>, string>> = {
  page: ' by a person, on the page',
  host: ' by the host or its agent',
}

export function closingText({ action, by }: Pick<Closed, 'action' | 'by'>): string {
  return `${WORDS[action]}${by === undefined ? '' : BY[by]}`
}
