/** Whatever races with whatever: every result arrives exactly once, and nothing goes on after the end (A5, A6, A9). */
import fc from 'fast-check'
import type { SubjectProperty } from '../support/planted-faults.js'
import { runRace } from './race.js'
import { order, schedulerOf } from './schedule.js'
import { raceScript } from './script.js'

export const delivery: SubjectProperty = {
  name: 'delivery',
  create: (subject) =>
    fc.asyncProperty(order, raceScript, (number, script) => runRace(subject, script, schedulerOf(number))),
}
