/** How often the process looks at the time (`LOOK_MS`), and from which delay on it reports (`SILENT_MS`), in ms. */
const LOOK_MS = 200
const SILENT_MS = 1000

/** Reports when this process did not run for a while, because it was stopped or the machine was busy. */
export function watchSilence(say: (line: { readonly silent: number }) => void): void {
  let last = Date.now()
  setInterval(() => {
    const silent = Date.now() - last
    last += silent
    if (silent >= SILENT_MS) say({ silent })
  }, LOOK_MS).unref()
}
