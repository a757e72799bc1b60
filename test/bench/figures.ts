/** Every figure, in the order in which they are printed. */
import type { Figure } from './figure.js'
import { launchAmongMany, lifeInACrowd, lifeInSeed000, lifeOfABareActor } from './figures/async-tasks.js'
import { oneEvent } from './figures/broadcast.js'
import { oneLane } from './figures/command-tasks.js'
import { heap } from './figures/heap.js'
import { importing } from './figures/import.js'
import { races } from './figures/races.js'
import { overSockets } from './figures/sockets.js'

export const figures: readonly Figure[] = [
  lifeInACrowd,
  lifeOfABareActor,
  lifeInSeed000,
  launchAmongMany,
  heap,
  oneLane,
  overSockets,
  oneEvent,
  races,
  importing,
]
