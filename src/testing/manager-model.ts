/** The part of the model that commands of your own need. */
import { admit, find, hasRoom, newTask, owed, queued, running, settle } from './task-model.js'

/** Reads and changes the model of a manager, in commands that you make with `managerCommand`. Every function takes the `ledger` of the model. */
export const managerModel = {
  /** Returns the task with this id; undefined if it is not retained. */
  find,
  /** Returns the running tasks of an owner, or of all owners, in the order of registration. */
  running,
  /** Returns the tasks that wait for a slot or for their next run, in the order of registration. */
  queued,
  /** Returns the tasks whose results are owed and not leased, in the order in which they ended. */
  owed,
  /** Returns whether a slot is free. */
  hasRoom,
  /** Returns a new task in the state `running`. Pass it to `admit` to register it. */
  newTask,
  /** Registers a task, with a reservation or without. */
  admit,
  /** Ends a task. The task must not have ended before. */
  settle,
} as const
