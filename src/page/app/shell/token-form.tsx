/** Asks for a token after the server has refused the current token. */
import { useSignal } from '@preact/signals'
import { usePage } from '../page-state.js'
import { pastedToken } from '../token.js'
import { refusalText } from './connection-words.js'

export function TokenForm({ hasSeen }: { readonly hasSeen: boolean }) {
  const { useToken, hasToken } = usePage()
  const pasted = useSignal('')
  return (
    <form
      class="notice token-form"
      onSubmit={(event) => {
        event.preventDefault()
        if (pasted.value.trim() !== '') useToken(pastedToken(pasted.value))
      }}
    >
      <p role="alert">
        <strong>No access.</strong> {refusalText({ hasToken: hasToken(), hasSeen })}
      </p>
      <label for="token">Link or token</label>
      <input
        id="token"
        type="password"
        autocomplete="off"
        spellcheck={false}
        value={pasted.value}
        onInput={({ currentTarget }) => (pasted.value = currentTarget.value)}
      />
      <button type="submit" class="primary">
        Use it
      </button>
    </form>
  )
}
