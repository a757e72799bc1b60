/** In any race every result arrives exactly once, and nothing happens after the end (A5, A6, A9). */
import fc from 'fast-check'
import { createRaceScheduler, raceOrders } from '../../src/testing/index.js'
import type { SubjectProperty } from '../support/planted-faults.js'
import { runRace } from './race.js'
import { raceScript } from './script.js'

export const delivery: SubjectProperty = {
  name: 'delivery',
  create: (subject) =>
    fc.asyncProperty(raceOrders(), raceScript, (order, script) => runRace(subject, script, createRaceScheduler(order))),
}
