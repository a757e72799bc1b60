/** How often it looks, in ms, and the delay that it tells of. */
const LOOK_MS = 200
const SILENT_MS = 1000

/** Says when this process did not run for a while: it was stopped, or the machine was busy. */
export function watchSilence(say: (line: { readonly silent: number }) => void): void {
  let last = Date.now()
  setInterval(() => {
    const silent = Date.now() - last
    last += silent
    if (silent >= SILENT_MS) say({ silent })
  }, LOOK_MS).unref()
}
