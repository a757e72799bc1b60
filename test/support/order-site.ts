/**
 * A web site with an order form, for browser tests. It records every request in the order of arrival, with its browser and its order. A test can hold a
 * receipt back.
 */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

export interface SiteRequest {
  /** The user agent of the browser. */
  readonly browser: string
  /** The id of the order. */
  readonly order: string
  readonly step: string
  /** The fields of the form that was sent. */
  readonly fields?: Readonly<Record<string, string>>
}

export interface HeldReceipt {
  /** Resolves when a page has requested the receipt. */
  readonly asked: Promise<void>
  release(): void
}

export interface OrderSite {
  /** The URL of an order's form. */
  formOf(order: string): string
  readonly requests: readonly SiteRequest[]
  /** The orders in the requests of a browser, in order. An order that occurs several times in a row is listed once. */
  turnsOf(browser: string): string[]
  /** Holds back the receipt of an order. */
  hold(order: string): HeldReceipt
  close(): Promise<void>
}

const page = (title: string, content: string): string =>
  `<!doctype html><html lang="en"><meta charset="utf-8"><title>${title}</title><link rel="icon" href="data:,">${content}</html>`

const formPage = (order: string): string =>
  page(
    'Order',
    `<h1>Order</h1>
    <form method="post" action="/order?id=${order}">
      <p><label>Name <input name="name"></label></p>
      <p><label>Size <select name="size"><option>small</option><option>large</option></select></label></p>
      <p><label><input type="checkbox" name="gift" value="yes"> Gift</label></p>
      <button>Send order</button>
    </form>
    <script>document.forms[0].addEventListener('input', ({ target }) => fetch('/seen?id=${order}&field=' + target.name, { keepalive: true }))</script>`,
  )

const resultPage = (order: string): string =>
  page(
    'Order taken',
    `<h1>Order taken</h1><p role="status">Waiting</p>
    <script>fetch('/receipt?id=${order}').then(async (answer) => { document.querySelector('p').textContent = await answer.text() })</script>`,
  )

/** Serves the site on the loopback interface. */
export async function openOrderSite(): Promise<OrderSite> {
  const requests: SiteRequest[] = []
  const names = new Map<string, string>()
  const holds = new Map<string, { readonly released: Promise<void>; asked(): void }>()

  async function answerReceipt(order: string, response: ServerResponse): Promise<void> {
    const held = holds.get(order)
    held?.asked()
    await held?.released
    response.end(`Receipt for ${names.get(order) ?? 'nobody'}`)
  }

  const server = createServer((request, response) => {
    void text(request).then((body) => {
      const url = new URL(request.url ?? '', 'http://site')
      const order = url.searchParams.get('id') ?? ''
      const step = `${request.method ?? ''} ${url.pathname}`
      const fields = Object.fromEntries(new URLSearchParams(body))
      requests.push({
        browser: request.headers['user-agent'] ?? '',
        order,
        step,
        ...(step === 'POST /order' && { fields }),
      })
      if (step === 'POST /order') names.set(order, fields['name'] ?? '')
      if (step === 'GET /receipt') {
        void answerReceipt(order, response)
        return
      }
      response.setHeader('content-type', 'text/html')
      if (step === 'GET /order') response.end(formPage(order))
      else if (step === 'POST /order') response.end(resultPage(order))
      else response.writeHead(step === 'GET /seen' ? 204 : 404).end()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo

  return {
    formOf: (order) => `http://127.0.0.1:${port}/order?id=${order}`,
    requests,
    turnsOf: (browser) =>
      requests
        .filter((request) => request.browser === browser)
        .map(({ order }) => order)
        .filter((order, at, orders) => order !== orders[at - 1]),
    hold: (order) => {
      let release: () => void = () => undefined
      const released = new Promise<void>((resolve) => (release = resolve))
      const asked = new Promise<void>((resolve) => holds.set(order, { released, asked: resolve }))
      return { asked, release }
    },
    close: async () => {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}
