/** Loaded before a program (`--import`): its wall clock is `CLOCK_SHIFT_MS` ahead, as that of a machine whose clock is wrong. Timers are not changed. */
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
