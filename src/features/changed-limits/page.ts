/** The actions of the page that change the deadline of a running task, or ask it to conclude. */
import { z } from 'zod'
import { lazily } from '../../protocol/lazily.js'
import { parseInput } from '../../protocol/parse.js'
import { strictObject } from '../../protocol/strict-object.js'
import { conflict, done, type Answer } from '../../page/answers.js'
import type { PageEntry } from '../../page/page-entry.js'
import type { PageFeature, PageParts } from '../../page/page-feature.js'
import type { ChangeResult } from './changed-limits.js'

const deadlineSchema = lazily(() =>
  strictObject({
    seconds: z
      .number()
      .min(0)
      .max(2 ** 31)
      .nullable(),
  }),
)
const concludeSchema = lazily(() => strictObject({ reason: z.string().min(1).max(1000).optional() }))

export const limitsPage: PageFeature = {
  taskActions: {
    deadline: (page, entry, body) => {
      const { seconds } = parseInput(deadlineSchema(), body, 'body')
      return change(page, entry, (manager, id) => manager.changeDeadline(id, seconds === null ? null : seconds * 1000))
    },
    conclude: (page, entry, body) => {
      const options = parseInput(concludeSchema(), body, 'body')
      return change(page, entry, (manager, id) => manager.concludeTask(id, options))
    },
  },
}

type Manager = NonNullable<PageParts['manager']>

async function change(
  { manager }: PageParts,
  entry: PageEntry,
  act: (manager: Manager, id: string) => ChangeResult,
): Promise<Answer> {
  if (entry.kind !== 'async' || manager === undefined) {
    return conflict('NOT_CHANGED', 'A command task cannot be changed: its commands have their own timeouts.')
  }
  const result = act(manager, entry.record.id)
  if (!result.changed) return conflict('NOT_CHANGED', result.reason)
  await manager.stored()
  return done()
}
