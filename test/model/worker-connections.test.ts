/** The connections of a worker against their model. Counterexamples that were found are named tests. */
import { it } from 'vitest'
import { CLIENT_CLOSE } from '../../src/protocol/client-messages.js'
import { WORKER_CLOSE } from '../../src/protocol/instance-messages.js'
import { checkProperty } from '../support/property.js'
import { connectionsProperty, runConnections } from './worker-connections.property.js'

it('W2: what is reported of a connection depends on that connection alone', async () => {
  await checkProperty('worker connections', connectionsProperty())
})

it('W2: an error that came before the welcome does not explain how the connection ends', () =>
  runConnections([{ messages: ['NO_TOKEN', 'welcome'], closesWith: CLIENT_CLOSE.refused }]))

it('W2: an error of a connection that was lost does not explain why the next one is refused', () =>
  runConnections([
    { messages: ['welcome'], closesWith: 1006 },
    { messages: ['BAD_TOKEN'], closesWith: 1006 },
    { messages: [], closesWith: WORKER_CLOSE.refused },
  ]))
