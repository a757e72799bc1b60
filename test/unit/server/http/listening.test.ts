// Starting an HTTP server, and its URL.
import { expect, it, onTestFinished } from 'vitest'
import { createServer, listen, stopListening, urlOf } from '../../../../src/server/http/listening.js'

it('a server that listens leaves later errors to others', async () => {
  const server = createServer(undefined, () => undefined)
  onTestFinished(() => stopListening(server))
  const before = server.listenerCount('error')
  const port = await listen(server, '127.0.0.1', 0, { host: 'host', port: 'port' })
  expect(port).toBeGreaterThan(0)
  expect(server.listenerCount('error')).toBe(before)
})

it('an address that is not of this machine is named as the host, and not as the port', async () => {
  const server = createServer(undefined, () => undefined)
  await expect(listen(server, '192.0.2.1', 0, { host: 'HOST', port: 'PORT' })).rejects.toMatchObject({
    code: 'INVALID_SETTING',
    message: expect.stringMatching(/HOST: got .*192\.0\.2\.1/) as string,
  })
})

it.each([
  ['0.0.0.0', 'http://127.0.0.1:80'],
  ['::', 'http://127.0.0.1:80'],
  ['::1', 'http://[::1]:80'],
  ['example.com', 'http://example.com:80'],
])('the URL of a server at %s is %s', (host, url) => {
  expect(urlOf('http', host, 80)).toBe(url)
})
