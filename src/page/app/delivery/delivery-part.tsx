/** The part Delivery: for each owner, the results that wait, the results that were delivered, and why the former wait. */
import { usePage } from '../page-state.js'
import { EmptyState } from '../shell/empty-state.js'
import { counted } from '../text/format.js'
import { OwnerCard } from './owner-card.js'
import { Terms } from './terms.js'

export function DeliveryPart() {
  const { owners, ownersLeftOut, hello } = usePage().view.value
  const sorted = owners.toSorted((a, b) => b.owed + b.leased - (a.owed + a.leased) || (a.owner < b.owner ? -1 : 1))
  return (
    <section class="part" aria-labelledby="delivery-heading">
      <div class="part-head">
        <h1 id="delivery-heading">Delivery</h1>
      </div>
      {ownersLeftOut > 0 && <p class="hint">Not shown: {counted(ownersLeftOut, 'more owner')} with owed results.</p>}
      {sorted.length > 0 ? (
        <>
          <Terms />
          <div class="cards">
            {sorted.map((delivery) => (
              <OwnerCard key={delivery.owner} delivery={delivery} />
            ))}
          </div>
        </>
      ) : hello?.hasAsync === false ? (
        <EmptyState
          title="This server has no async tasks"
          command="await createTaskPage({ tasks: createAgentTasks({ … }) })"
        >
          Results are delivered to the owners of async tasks. To see deliveries, pass the tasks of an agent host to the
          page:
        </EmptyState>
      ) : hello?.hints === 'mcp' ? (
        <EmptyState title="No results yet" command="Which of your background tasks have ended, and what came out?">
          When a task ends, the next tool call of your MCP client delivers the result to the agent. To get results at
          once, ask the agent:
        </EmptyState>
      ) : (
        <EmptyState title="No results yet" command="tasks.setupAsyncTaskAutoTrigger(isAgentBusy, triggerAgentTurn)">
          When a task ends, its result waits until a message delivers it to the owner of the task. An auto-trigger sends
          such messages as soon as the agent is idle:
        </EmptyState>
      )}
    </section>
  )
}
