/** A setup file of `npm run coverage:charts`. It watches every actor in a test file, and writes the states and transitions that the actors reached. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { afterAll, expect, vi } from 'vitest'
import { reachedDirectory, type ReachedFile } from '../test/support/reached-file.js'
import { reachedCharts } from '../test/support/watched-xstate.js'

vi.mock('xstate', () => import('../test/support/watched-xstate.js').then(({ watchedXState }) => watchedXState()))

afterAll(() => {
  const file = relative(process.cwd(), expect.getState().testPath ?? '')
  const charts: ReachedFile['charts'] = Object.fromEntries(
    Array.from(reachedCharts, ([id, { ways, states, transitions }]) => [
      id,
      { ways, states: [...states], transitions: [...transitions] },
    ]),
  )
  mkdirSync(reachedDirectory, { recursive: true })
  writeFileSync(join(reachedDirectory, `${file.replace(/\W+/g, '-')}.json`), JSON.stringify({ file, charts }))
})
