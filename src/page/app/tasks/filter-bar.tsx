/** The filter of the tasks. It is in the address, so that a person can link to it. */
import { useEffect, useRef } from 'preact/hooks'
import type { PageTaskState } from '../../wire.js'
import { withParameter, type Address } from '../addresses.js'
import { replaceAddress } from '../current-address.js'
import { StateIcon } from '../shell/state-icon.js'
import { STATES, LOOKS } from '../text/states.js'
import { count } from '../text/format.js'
import { FilterSelect } from './filter-select.js'
import type { FilterChoices, TaskFilter } from './task-filter.js'

interface Props {
  readonly filter: TaskFilter
  readonly choices: FilterChoices
  readonly address: Address
  /** Called when the down arrow is pressed in the text field, so that the focus moves to the list. */
  readonly onLeave: () => void
}

export function FilterBar({ filter, choices, address, onLeave }: Props) {
  const input = useRef<HTMLInputElement>(null)
  const set = (name: string, value: string | undefined): void => replaceAddress(withParameter(address, name, value))
  const toggle = (state: PageTaskState): void => {
    const others = filter.states.filter((one) => one !== state)
    set('state', (others.length < filter.states.length ? others : [...others, state]).join(','))
  }
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const isTyping = event.target instanceof HTMLElement && event.target.matches('input, textarea, select')
      if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey || event.altKey) return
      event.preventDefault()
      input.current?.focus()
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [])
  return (
    <search class="filters">
      <label class="grow">
        <span class="label">Filter</span>
        <input
          ref={input}
          type="search"
          placeholder="Goal, id, owner, error …  ( / )"
          value={filter.text}
          onKeyDown={(event) => {
            if (event.key !== 'ArrowDown') return
            event.preventDefault()
            onLeave()
          }}
          onInput={({ currentTarget }) => set('text', currentTarget.value)}
        />
      </label>
      <FilterSelect label="Owner" value={filter.owner} options={choices.owners} onChange={(to) => set('owner', to)} />
      <FilterSelect
        label="Instance"
        value={filter.instance}
        options={choices.instances}
        least={choices.owners.length > 0 ? 1 : 2}
        onChange={(to) => set('instance', to)}
      />
      <FilterSelect
        label="Subagent"
        value={filter.subagent}
        options={choices.subagents}
        onChange={(to) => set('subagent', to)}
      />
      <div class="chips" role="group" aria-label="States">
        {STATES.filter((state) => choices.states.has(state) || filter.states.includes(state)).map((state) => (
          <button
            key={state}
            type="button"
            class="chip"
            aria-pressed={filter.states.includes(state)}
            onClick={() => toggle(state)}
          >
            <StateIcon state={state} />
            {LOOKS[state].word} <span class="number">{count(choices.states.get(state) ?? 0)}</span>
          </button>
        ))}
      </div>
    </search>
  )
}
