/** The action of the page that moves a foreground task to the background. */
import { parseInput } from '../../protocol/parse.js'
import { conflict, done, nothingSchema } from '../../page/answers.js'
import type { PageFeature } from '../../page/page-feature.js'

export const detachPage: PageFeature = {
  taskActions: {
    detach: ({ manager }, entry, body) => {
      parseInput(nothingSchema(), body, 'body')
      if (entry.kind !== 'async') return conflict('NOT_DETACHED', 'A command task always runs in the background.')
      const result = manager?.detachTask(entry.record.id)
      return result?.detached === true ? done() : conflict('NOT_DETACHED', result?.reason ?? 'There is no such task.')
    },
  },
}
