/** The messages that carried results to an owner. */
import type { DeliveryMessage } from '../../wire.js'
import { TaskLink } from '../task/task-facts.js'
import { counted, duration, timeOfDay } from '../text/format.js'
import { visible } from '../text/visible.js'

const OUTCOMES: Readonly<Record<DeliveryMessage['outcome'], string>> = {
  open: 'On its way',
  accepted: 'Accepted',
  released: 'Not accepted',
}

export function Messages({ messages }: { readonly messages: readonly DeliveryMessage[] }) {
  return (
    <details open={messages.length <= 5}>
      <summary>{counted(messages.length, 'message')}</summary>
      <ol class="messages">
        {messages.map(({ deliveryId, at, endedAt, outcome, tasks }) => (
          <li key={deliveryId}>
            <p>
              <span class="number">{timeOfDay(at)}</span> <span class={`outcome-${outcome}`}>{OUTCOMES[outcome]}</span>
              {endedAt !== undefined && <span class="hint number"> after {duration(endedAt - at)}</span>}{' '}
              <code class="hint">{visible(deliveryId)}</code>
            </p>
            <ul class="links">
              {tasks.map((key) => (
                <li key={key}>
                  <TaskLink taskKey={key} />
                </li>
              ))}
            </ul>
          </li>
        ))}
      </ol>
    </details>
  )
}
