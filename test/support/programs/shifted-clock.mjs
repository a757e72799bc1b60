/**
 * Loaded before a program (`--import`). It sets the wall clock of the program `CLOCK_SHIFT_MS` ahead, as on a machine whose clock is wrong. Timers are
 * not changed.
 */
const shift = Number(process.env.CLOCK_SHIFT_MS)
const { now } = Date
const RealDate = Date
globalThis.Date = class extends RealDate {
  constructor(...args) {
    super(...(args.length === 0 ? [now() + shift] : args))
  }
  static now() {
    return now() + shift
  }
}
