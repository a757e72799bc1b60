/** Delivery: what each owner is owed, what was delivered, and why the rest waits. */
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
      {ownersLeftOut > 0 && (
        <p class="hint">{counted(ownersLeftOut, 'more owner')} of whom something is owed: these come first.</p>
      )}
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
          Results are delivered to the owners of async tasks. Give the page the tasks of an agent host:
        </EmptyState>
      ) : hello?.hints === 'mcp' ? (
        <EmptyState title="No results yet" command="Which of your background tasks have ended, and what came out?">
          When a task ends, its result is owed to the agent. The next tool call of its MCP client brings it; to have it
          at once, ask:
        </EmptyState>
      ) : (
        <EmptyState title="No results yet" command="tasks.setupAsyncTaskAutoTrigger(isAgentBusy, triggerAgentTurn)">
          When a task of an owner ends, its result is owed to that owner until a message has carried it. An owner that
          subscribes gets it by itself.
        </EmptyState>
      )}
    </section>
  )
}
