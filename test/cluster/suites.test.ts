/** What clients see of lanes and subscribers, on three servers behind one address. */
import { laneSuite } from '../support/lane-suite.js'
import { startNearCluster } from '../support/near-cluster.js'
import type { OpenServers } from '../support/served-tasks.js'
import { subscriberSuite } from '../support/subscriber-suite.js'

const open: OpenServers = (server) => startNearCluster(3, { server })

laneSuite('three servers', open)
subscriberSuite('three servers', open)
