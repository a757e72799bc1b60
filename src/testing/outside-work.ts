/** Detects work that code in a race has started but the race does not control: real timers, fetch, files, connections and child processes. */

export interface OutsideWatch {
  /** A hint for a hang: the work that has started since the watch began and has not ended. */
  hint(): string
  stop(): void
}

const CONNECTION = 'a connection'

/** The names of `process.getActiveResourcesInfo()` by what starts them. */
const resources: Readonly<Record<string, readonly string[]>> = {
  'a real timer': ['Timeout', 'Immediate'],
  'a file operation (fs)': ['FSReqCallback', 'FSReqPromise'],
  [CONNECTION]: [
    ...['TCPSocketWrap', 'TCPConnectWrap', 'PipeWrap', 'PipeConnectWrap', 'TLSWrap', 'UDPWrap'],
    ...['GetAddrInfoReqWrap', 'QueryReqWrap'],
  ],
  'a child process': ['ProcessWrap'],
}

// `fetch` connects after all microtasks, which is after the run, so its resources would be missed.
let fetches = 0
let watches = 0
let original: typeof fetch
const countedFetch: typeof fetch = (...args) => {
  fetches += 1
  return original(...args)
}

/** Watches until `stop` is called. Overlapping runs see each other's work. */
export function watchOutside(): OutsideWatch {
  const before = countActive()
  const fetchesBefore = fetches
  watches += 1
  if (globalThis.fetch !== countedFetch) {
    original = globalThis.fetch
    globalThis.fetch = countedFetch
  }
  return {
    hint: () => {
      const now = countActive()
      const isFetching = fetches > fetchesBefore
      const started = Object.entries(resources).flatMap(([what, names]) =>
        names.some((name) => (now.get(name) ?? 0) > (before.get(name) ?? 0)) ? [what] : [],
      )
      // A fetch has a connection of its own.
      const all = isFetching ? [...started.filter((what) => what !== CONNECTION), 'fetch'] : started
      const found = all.length === 0 ? '' : `The run has started ${all.join(' and ')}, for which a race does not wait. `
      return `${found}Set timers on race.clock, and pass promises of the outside to race.schedule.`
    },
    stop: () => {
      watches -= 1
      // A mock that has replaced it in the meantime stays.
      if (watches === 0 && globalThis.fetch === countedFetch) globalThis.fetch = original
    },
  }
}

function countActive(): Map<string, number> {
  const counts = new Map<string, number>()
  for (const name of process.getActiveResourcesInfo()) counts.set(name, (counts.get(name) ?? 0) + 1)
  return counts
}
