/** P8: what one event costs the server, for many subscribers and among many clients. */
import type { Figure } from '../figure.js'
import { interleave, ratioOf } from '../interleave.js'

const count = (n: number): string => n.toLocaleString('en-GB')

export const oneEvent: Figure = {
  id: 'P8',
  title: 'The cost of one event',
  async measure({ isQuick, effort }) {
    const many = isQuick ? 100 : 1000
    const crowd = isQuick ? 500 : 10_000
    const all = { clients: many, subscribed: many }
    const { told, sent } = await interleave(
      {
        told: { module: 'broadcast', create: 'serverEvents', params: all },
        sent: { module: 'broadcast', create: 'rawSends', params: all },
      },
      effort,
    )
    const { among, alone } = await interleave(
      {
        among: { module: 'broadcast', create: 'serverEvents', params: { clients: crowd, subscribed: 1 } },
        alone: { module: 'broadcast', create: 'serverEvents', params: { clients: 1, subscribed: 1 } },
      },
      effort,
    )
    return [
      {
        figure: 'P8',
        name: `one event to ${count(many)} subscribers`,
        value: told.cpuNs.median / 1000,
        unit: 'us',
        ratio: ratioOf(told, sent),
        reference: 'one serialisation, as many raw sends',
        goal: { atMost: 1.2 },
      },
      {
        figure: 'P8',
        name: `one event to one of ${count(crowd)} clients`,
        value: among.cpuNs.median / 1000,
        unit: 'us',
        ratio: ratioOf(among, alone),
        reference: 'the same with one client',
        goal: { atMost: 1.1 },
      },
    ]
  },
}
