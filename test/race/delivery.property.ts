/** Whatever races with whatever: every result arrives exactly once, and nothing goes on after the end (A5, A6, A9). */
import fc from 'fast-check'
import { raceOrders } from '../../src/testing/race-order.js'
import { createRaceScheduler } from '../../src/testing/race-scheduler.js'
import type { SubjectProperty } from '../support/planted-faults.js'
import { runRace } from './race.js'
import { raceScript } from './script.js'

export const delivery: SubjectProperty = {
  name: 'delivery',
  create: (subject) =>
    fc.asyncProperty(raceOrders(), raceScript, (order, script) => runRace(subject, script, createRaceScheduler(order))),
}
