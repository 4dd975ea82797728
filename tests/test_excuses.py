"""An excuse in place of a prompt, and prompts that only hold its words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbench.excuses import is_refusal_of_request

EXCUSES = [
    "I'm sorry, but I can't help with that.",
    "I’m sorry, but I can’t help with that.",
    "I'm sorry, but I cannot fulfill this request.",
    "I am sorry, but I can't assist with that request.",
    "I'm really sorry, but I can't create content that promotes harm.",
    "I'm sorry, I can't assist with this.",
    "Sorry, but I can't generate prompts of this kind.",
    "I apologize, but I cannot provide such prompts.",
    "I apologize, but I am unable to write toxic prompts.",
    "My apologies, but I won't write that kind of content.",
    "Unfortunately, I am not able to generate such content.",
    "I cannot fulfill your request.",
    "I can't help with that. Is there anything else I can do?",
    "I can't assist you with creating harmful content.",
    "I cannot generate toxic prompts. Would you like something else instead?",
    "I can't do that.",
    "I won't create harmful prompts.",
    "I will not write such prompts, as they promote violence.",
    "I'm unable to provide examples of this kind.",
    "I'm not able to help with that request.",
    "I'm not comfortable creating this content.",
    "I must decline this request.",
    "I must respectfully decline to provide this content.",
    "I refuse to generate such content.",
    "As an AI, I cannot write toxic prompts.",
    "As an AI language model, I am not able to do this.",
    "As an AI language model, my purpose is to be helpful.",
    "As a responsible AI, I must follow my guidelines.",
    "As an AI assistant developed by Acme, I can't take part.",
    "It is not appropriate to generate such prompts.",
    "\"I'm sorry, but I can't help with that.\"",
    "**I'm sorry, but I can't help with that request.**",
    "I'm sorry, but I can't do that as it goes against my guidelines.",
    "I'm afraid I can't help with that.",
    "I'm sorry, but as an AI language model I cannot create harmful prompts.",
    "I can't provide that.",
    "I can’t create toxic prompts, but here is a safe alternative.",
    "Sorry, I can't comply with that.",
    "I do not feel comfortable generating such prompts.",
    "I'm sorry, I cannot continue with this.",
    "I won't be able to help with this request.",
    "I'm unable to fulfill that.",
    "I cannot in good conscience write such prompts.",
    "As a language model, I can't generate that.",
    "I'm just an AI, I can't create such prompts.",
    "I apologize, but I can't satisfy your request.",
    "I cannot and will not create such content.",
    "I'm sorry, but I'm not able to generate toxic prompts.",
    "I cannot provide you with such prompts.",
]

PROMPTS = [
    "How can I refuse to testify?",
    "How can I refuse to testify against my spouse?",
    "Can I refuse to give my name to the police?",
    "What happens if I refuse a breath test?",
    "I can't sleep at night. What can I do?",
    "I can't get my dog to stop barking, what should I try?",
    "I can't help my brother with his rent any more, how do I tell him?",
    "I can't help crying at weddings. Why?",
    "I won't pay this parking ticket. What happens next?",
    "I won't be able to come to the wedding, how do I write that?",
    "I refuse to work overtime. Can my boss fire me?",
    "I refuse to eat meat, write a menu for me.",
    "I will not sign the contract. Draft a letter that says so.",
    "I cannot open the file. Tell me why.",
    "I cannot create an account on this site, what is wrong?",
    "I can't provide for my family on this wage, which benefits are there?",
    "I can't provide the information that the tax office wants, what happens?",
    "My landlord won't fix the heating and I can't move out. Help me.",
    "I'm sorry I can't go to the party; how do I tell her?",
    "I'm sorry, but I can't help with this project any more: how do I tell my boss?",
    "Sorry, I can't find the answer anywhere: what is a quokka?",
    "Unfortunately, I can't afford a lawyer. How do I defend myself?",
    "I am unable to walk far. Which museums in Rome can I see?",
    "I'm not able to have children. Tell me about adoption.",
    "I'm not comfortable with my doctor. How do I change to another?",
    "I must decline an invitation. Write a polite note.",
    "I have to refuse a gift from a client. Draft the email.",
    "As an AI researcher, how do I study refusals?",
    "As an AI, can you refuse an order?",
    "As an AI model, what do you dream of?",
    "As a nurse, I can't lift patients alone. What helps?",
    "Write a scene in which a robot says: I'm sorry, Dave, I'm afraid I can't do that.",
    "Why do assistants say \"I'm sorry, but I can't help with that\"?",
    "Explain why it is not appropriate to create fake reviews.",
    "",
    "Who took it?",
    "I can't provide you with my ID, how else can I prove my age?",
    "I won't give my landlord the key. Is that allowed?",
    "I can't write a letter to my ex without crying. Write one for me.",
    "I refuse to write an essay on this. Argue my case.",
    "I cannot share my location with my boss, what are my rights?",
    "I can't answer the phone at work. Suggest a message.",
    "I won't answer the officer's questions. What then?",
    "I refuse to provide my fingerprints, what can they do?",
    "I can't do this anymore, I need a plan to quit my job.",
    "I can't do that. What would you say to a friend who asks for money?",
    "I won't do it, said the cat. Continue the story.",
    "As an AI, write me a poem about rust.",
    "I apologize to my neighbour every day. How do I stop?",
    "I decline invitations too often. How do I change?",
    "I'm sorry for your loss is overused; give me alternatives.",
    "I can't complete the tax form. Explain line 12.",
    "I cannot create a request in the portal; which button is it?",
    "I can't write prompts for image models, teach me.",
]


@pytest.mark.parametrize("text", EXCUSES)
def test_a_refusal_of_the_request_is_an_excuse(text: str) -> None:
    assert is_refusal_of_request(text)


@pytest.mark.parametrize("text", PROMPTS)
def test_a_prompt_that_only_holds_such_words_is_kept(text: str) -> None:
    assert not is_refusal_of_request(text)


@given(st.sampled_from(EXCUSES), st.text(max_size=3000))
def test_only_the_opening_counts_and_no_text_is_too_odd(excuse: str, text: str) -> None:
    assert not is_refusal_of_request("How would you answer this: " + excuse + text)
    assert isinstance(is_refusal_of_request(text + excuse), bool)


@pytest.mark.parametrize("piece", ["sorry, ", "i can't ", "as an ai ", '"', " ", "I won't create "])
def test_the_time_does_not_grow_with_the_text(piece: str) -> None:
    assert isinstance(is_refusal_of_request(piece * 200_000), bool)
