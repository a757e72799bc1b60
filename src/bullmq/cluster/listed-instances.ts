/** Lists the instances of a cluster. */
import type { InstanceSummary } from '../../protocol/rest.js'
import type { ClusterRedis } from './cluster-redis.js'

/** The maximum size of all tools in one list, in bytes of JSON (16 MiB). Further instances are listed without their tools. */
const MAX_TOOLS_BYTES = 16 * 1024 * 1024

export async function listInstances(redis: ClusterRedis): Promise<InstanceSummary[]> {
  let room = MAX_TOOLS_BYTES
  return (await redis.instances()).map(({ tools, ...summary }) => {
    const { isConnected } = summary
    room -= isConnected ? (tools?.length ?? 0) : 0
    if (!isConnected || tools === undefined || room < 0) return summary
    return { ...summary, tools: JSON.parse(tools) as NonNullable<InstanceSummary['tools']> }
  })
}
