/** How much a client over HTTP can make an MCP server hold: a thousand sessions, two thousand connections. */
import { expect, it, onTestFinished } from 'vitest'
import { listenWith } from '../../src/mcp/http.js'
import { acceptedConnections } from '../support/accepted-connections.js'
import { openSession } from '../support/mcp-sessions.js'
import { setUpApp } from '../unit/mcp/wire.js'

it('refuses a session when there are 1,000', async () => {
  const { app } = setUpApp()
  const server = await listenWith(app, { port: 0 })
  onTestFinished(() => server.close())
  const statuses: number[] = []
  for (let round = 0; round < 10; round += 1) {
    const opened = await Promise.all(Array.from({ length: 100 }, () => openSession(server.url)))
    statuses.push(...opened.map(([status]) => status))
  }
  expect(statuses.filter((status) => status === 200)).toHaveLength(1000)
  expect(await openSession(server.url)).toEqual([503, expect.stringContaining('There are too many sessions')])
}, 120_000)

it('accepts 2,000 connections of an address, and no more', async () => {
  const server = await listenWith(setUpApp().app, { port: 0 })
  onTestFinished(() => server.close())
  expect(await acceptedConnections(server.url, 2000)).toBe(2000)
})
