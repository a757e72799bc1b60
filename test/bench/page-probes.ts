/** What the benchmark runs in the browser. Each function is sent as text: it uses nothing of this file but itself. */

declare function requestAnimationFrame(onFrame: (at: number) => void): number
declare const document: { querySelector(selector: string): { readonly textContent: string } | null }
declare class MutationObserver {
  constructor(onChange: () => void)
  observe(root: typeof document, what: Readonly<Record<'subtree' | 'childList' | 'characterData', boolean>>): void
  disconnect(): void
}

/** The time between frames, in ms. */
export function frames(forMs: number): Promise<number[]> {
  return new Promise((resolve) => {
    const times: number[] = []
    const begun = performance.now()
    let last: number | undefined
    const onFrame = (at: number): void => {
      if (last !== undefined) times.push(at - last)
      last = at
      if (at - begun < forMs) requestAnimationFrame(onFrame)
      else resolve(times)
    }
    requestAnimationFrame(onFrame)
  })
}

/** How long ago each task that appears was launched, in ms. */
export function arrivals(forMs: number): Promise<number[]> {
  return new Promise((resolve) => {
    const seen = new Map<string, number>()
    const begun = performance.timeOrigin + performance.now()
    const observer = new MutationObserver(() => {
      const shown = [...(document.querySelector('main')?.textContent ?? '').matchAll(/sent at ([\d.]+)/g)]
      // What was changed now is drawn with this frame; the next task after it finds it on the screen.
      requestAnimationFrame(() => {
        setTimeout(() => {
          const now = performance.timeOrigin + performance.now()
          for (const [, sentAt = ''] of shown) {
            if (Number(sentAt) > begun && !seen.has(sentAt)) seen.set(sentAt, now - Number(sentAt))
          }
        })
      })
    })
    observer.observe(document, { subtree: true, childList: true, characterData: true })
    setTimeout(() => {
      observer.disconnect()
      resolve([...seen.values()])
    }, forMs)
  })
}
