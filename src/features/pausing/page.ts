/** Pauses on the page. */
import { z } from 'zod'
import { lazily } from '../../protocol/lazily.js'
import { strictObject } from '../../protocol/strict-object.js'
import { nothingSchema } from '../../page/answers.js'
import { onRow, type PageFeature } from '../../page/page-feature.js'

const pauseSchema = lazily(() => strictObject({ deliveries: z.enum(['hold', 'send']).optional() }))

/** Returns the owner in the id of a pause; undefined for the pause of all owners. */
const ownerIn = (id: string): string | undefined => (id === 'all' ? undefined : id.replace(/^owner:/, ''))

export const pausePage: PageFeature = {
  rows: (manager) =>
    manager.pauses().map(({ owner = '', deliveries, since: at, by = 'code of the host' }) => {
      const detail = `by ${by}; results are ${deliveries === 'hold' ? 'held' : 'sent'}`
      return { kind: 'pauses', id: owner === '' ? 'all' : `owner:${owner}`, owner, at, detail }
    }),
  rowActions: {
    'pauses/pause': onRow(pauseSchema, (manager, id, how) => manager.pause(ownerIn(id), { ...how, by: 'the page' })),
    'pauses/resume': onRow(nothingSchema, (manager, id) => manager.resume(ownerIn(id))),
  },
}
