/** Setup of every test file: makes `it.prop` and `fc.assert` follow FC_NUM_RUNS and FC_SEED, as `checkProperty` does. */
import fc from 'fast-check'
import { givenSeed, runs } from './property.js'

fc.configureGlobal({ numRuns: runs, ...(givenSeed === undefined ? {} : { seed: givenSeed }) })
