/** Every figure, in the order in which they are printed. */
import type { Figure } from './figure.js'
import { launchAmongMany, lifeInACrowd, lifeInSeed000, lifeOfABareActor } from './figures/async-tasks.js'

export const figures: readonly Figure[] = [lifeInACrowd, lifeOfABareActor, lifeInSeed000, launchAmongMany]
